import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digest, hash, signWith } from '../../src/worker/digests.js';

describe('the digests of a Worker', () => {
  it('are those of Node for every text, halves of surrogate pairs included, so that ids are the same, SPEC 1.4', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ minLength: 32 }), (text, secret) => {
        expect(hash(text)).toBe(createHash('sha256').update(text).digest('base64url').slice(0, 32));
        expect(signWith(secret)(text)).toBe(createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32));
      }),
    );
    for (const text of ['\ud800', 'a\udfffb', '', '\0']) {
      expect(hash(text)).toBe(createHash('sha256').update(text).digest('base64url').slice(0, 32));
    }
  });

  it('are those of Node for every bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(digest(bytes)).toBe(createHash('sha256').update(bytes).digest('base64url'));
      }),
    );
  });
});
