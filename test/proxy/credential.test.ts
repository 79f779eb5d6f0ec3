import { describe, expect, it } from 'vitest';
import { withoutCredential } from '../../src/proxy/credential.js';

describe('a query without its credential', () => {
  it.each([
    ['', ''],
    ['?api-version=2024-10-21', '?api-version=2024-10-21'],
    ['?key=secret', ''],
    ['?api-version=1&api-key=secret&a=%20b+c&a=', '?api-version=1&a=%20b+c&a='],
    ['?k%65y=secret&monkey=1', '?monkey=1'],
    ['?api_key=one&api_key=two&flag', '?flag'],
  ])('keeps every other parameter character for character: %s', (query, kept) => {
    expect(withoutCredential(query)).toBe(kept);
  });
});
