"""The service side of the transport: endpoints of queues, delivery, administration, and the loop's time shares.

Input: messages of peers. Output: messages of the core to its driver, and back. Read `service_transport.py` first, then
`_delivery.py`.
"""
