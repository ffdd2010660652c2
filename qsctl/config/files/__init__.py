"""Files to trees: load order, variables, safe parsing, and the schema's judgement [QS 3.1 and 3.4].

Input: names of files. Output: trees whose elements remember their lines, or all problems of a file. Read
`load_order.py` first, then `document.py` and `schema.py`.
"""
