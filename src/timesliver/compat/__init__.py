"""The classifier in the clothes of other libraries: `aeon` and `captum`."""
