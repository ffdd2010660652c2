"""A service made equal to a file: what differs, the commands that change it, and their execution.

`plan` compares two configurations and tries each command on a model of the service; nothing is asked of a service.
`apply` gives the commands to one.
"""
