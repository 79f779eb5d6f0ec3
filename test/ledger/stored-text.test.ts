import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fromStoredText, toStoredText } from '../../src/ledger/stored-text.js';

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\0', '\u0001', '\ud800', '\udfff', '"', '\\'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  ),
});

it('stored text holds no NUL and no lone surrogate, and reads back exactly, SPEC 4.5', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const stored = toStoredText(text);
      expect(stored).not.toMatch(/\0|\p{Surrogate}/u);
      expect(fromStoredText(stored)).toBe(text);
    }),
  );
});

it('ordinary text is stored as it is', () => {
  for (const text of ['', '{"role":"user","content":"é 😀\\u0000"}', 'two\nlines'])
    expect(toStoredText(text)).toBe(text);
});
