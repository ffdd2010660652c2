"""The egress queues of message brokers: Solace and the TIBCO appliance, in one compiled loop."""
