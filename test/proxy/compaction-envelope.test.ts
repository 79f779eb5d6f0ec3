import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openEnvelope, sealEnvelope } from '../../src/proxy/compaction-envelope.js';
import type { Sign } from '../../src/proxy/tenant.js';

const signer =
  (secret: string): Sign =>
  (text) =>
    createHmac('sha256', secret).update(text).digest('base64url').slice(0, 32);
const sign = signer('secret');
const envelopes = fc.record({
  conversation: fc.string(),
  pinned: fc.array(fc.jsonValue()).map((values) => JSON.parse(JSON.stringify(values)) as unknown[]),
  content: fc.string({ unit: 'binary' }),
});

describe('an envelope', () => {
  it('opens to what was sealed, after any way through JSON, for its tenant and under its secret only (SPEC 1.1)', () => {
    fc.assert(
      fc.property(envelopes, fc.string(), fc.string(), (envelope, tenant, other) => {
        const sealed = JSON.parse(JSON.stringify(sealEnvelope(envelope, tenant, sign))) as string;
        expect(openEnvelope(sealed, tenant, sign)).toEqual(envelope);
        expect(openEnvelope(sealed, tenant, signer('another'))).toBe('forged');
        if (other !== tenant) expect(openEnvelope(sealed, other, sign)).toBe('forged');
      }),
    );
  });

  it('with any one character changed is forged, or no envelope any more', () => {
    const sealed = sealEnvelope({ conversation: 'c', pinned: [], content: 'text' }, 't', sign);
    for (let at = 0; at < sealed.length; at++) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'x' ? 'y' : 'x'}${sealed.slice(at + 1)}`;
      expect(openEnvelope(changed, 't', sign)).toBe(at < 'spillway.compaction.'.length ? 'foreign' : 'forged');
    }
  });

  it.each(['', 'gAAAAB', '{"conversation":"c","pinned":[],"content":"text"}'])(
    'is not %j, which is foreign',
    (text) => {
      expect(openEnvelope(text, 't', sign)).toBe('foreign');
    },
  );

  it('is none whose text is signed and says something else', () => {
    const sealed = sealEnvelope(JSON.parse('{"conversation":"c","pinned":{},"content":"text"}'), 't', sign);
    expect(openEnvelope(sealed, 't', sign)).toBe('forged');
  });
});
