"""AES-128 and PRESENT-80 on encrypted bits (TFHE), gate by gate.

A client encrypts plaintext and key; a server runs the cipher on both and sees neither. What a server does
with data that arrive under a block cipher begins so.
"""
