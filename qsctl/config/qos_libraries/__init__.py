"""QoS libraries: inheritance, contradictions, and what the DDS library has of them.

Input: QoS elements. Output: policies with the place of each value. Read `qos.py` first.
"""
