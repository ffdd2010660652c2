"""Every setting of a service, one table a subject: the only place that knows where a setting is written and what it is.

A row names the tag, the field of the dataclass, the kind with its range, the section of [QS] that states the default,
the help text, and for some the option of `create-queue`. The default itself is the field's. From the tables come: the
reader (`reader.py`), origins, the canonical and the difference writer (`writer.py`), the options of `create-queue` with
their help, and the ranges in messages. A test holds that the XSD has the same types, ranges, defaults and words.

To add a setting: a field with its default in the dataclass, a row here, an element in the XSD, and what obeys it.
Read `queue.py` first.
"""
