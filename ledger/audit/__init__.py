"""The audit's answers in the forms that people and tools read: a tree of lines, Markdown, W3C PROV, a picture."""
