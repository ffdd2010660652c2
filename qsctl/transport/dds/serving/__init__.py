"""The service's end: endpoints of queues, delivery, administration, and the division of the loop's time.

Input: messages of peers. Output: messages of the core to its driver, and back. Read `service_transport.py` first,
then `delivery.py`.
"""
