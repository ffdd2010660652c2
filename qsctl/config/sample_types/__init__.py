"""Types of samples: `<types>` and IDL to definitions, and from there to classes and values [QS 3.3.1].

Input: elements of a file, or IDL. Output: definitions, classes of the DDS library made of them when first needed, and
values checked before the library receives them. Read `type_model.py` first, then `_type_reader.py`.
"""
