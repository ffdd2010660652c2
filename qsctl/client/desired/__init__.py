"""Making a service equal to a file: the differences, the commands that change the service, and their execution.

`plan` compares two configurations and tries each command on a model of the service, without contacting one.
`execution` sends the commands to the service.
"""
