"""The formats of client profiles: one module each, with a reader and a writer that follow the table of settings.

In: the text of a file, its format named or recognized by content (`_format.py`). Out: `ClientProfile`s with the line
of each value, by way of `draft.py`, which checks every value against the table; and the text of any format again.

- `file.py`: files of client profiles, whatever the format; `selection.py`: which fields a writer is given;
- `semp_v2.py`, `_semp_v1.py`: what the broker's management interface sends and accepts;
- `_cli_text.py`, `_cli_words.py`: scripts of the CLI; `listing.py`: `show client-profile … detail`;
- `_terraform.py` with `_hcl.py` and `_terraform_json.py`, `_ansible.py`, `_csv_table.py`, `xml.py`.

Invariants: a file that is written and read again gives the same profiles, less what the format cannot hold; a value
outside of its range is reported with the range, and is unknown; so is a value that is elsewhere, as a template or a
reference; unknown settings are reported with the nearest known name.

Read first: `_format.py`, `draft.py`, then one format, such as `semp_v2.py`.
"""
