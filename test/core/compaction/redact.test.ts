import { describe, expect, it } from 'vitest';
import { redactSecrets } from '../../../src/core/compaction/redact.js';

// Made up, and put together here so that no scanner takes them for real ones.
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ';
const pem = (lineBreak: string): string =>
  ['-----BEGIN RSA ', 'PRIVATE KEY-----', lineBreak, letters, lineBreak, `${letters}==`, lineBreak].join('') +
  ['-----END RSA ', 'PRIVATE KEY-----'].join('');

const secrets: readonly (readonly [string, string])[] = [
  ['a provider’s key', ['sk', 'proj', letters].join('-')],
  ['a personal token', ['ghp', letters.slice(0, 36)].join('_')],
  ['a fine-grained token', ['github', 'pat', `${letters}${letters}`].join('_')],
  ['a chat token', ['xoxb', '1234567890', letters].join('-')],
  ['a cloud access key', ['AKIA', 'IOSFODNN7EXAMPLE'].join('')],
  ['a maps key', ['AIza', letters.slice(0, 35)].join('')],
  ['a web token', `eyJ${letters}.eyJ${letters}.${letters}`],
  ['a private key', pem('\n')],
];

describe('credentials in well-known shapes are replaced', () => {
  it.each(secrets)('%s, wherever it stands in text', (_name, secret) => {
    for (const text of [secret, `KEY=${secret}`, `"${secret}"`, `first\n${secret}\nlast`, `(${secret})`]) {
      expect(redactSecrets(text)).toBe(text.replace(secret, '[redacted]'));
    }
  });

  it.each(secrets)('%s, behind a line break in JSON', (_name, secret) => {
    const args = JSON.stringify({ content: `first\n${secret}\nlast` });
    expect(redactSecrets(args)).toBe(JSON.stringify({ content: 'first\n[redacted]\nlast' }));
  });

  it('several in one text, each of them', () => {
    const all = secrets.map(([, secret]) => secret).join(' and ');
    expect(redactSecrets(all)).toBe(secrets.map(() => '[redacted]').join(' and '));
  });
});

it.each([
  'a task-force and a desk-abcdefghijklmnopqrstuvwxyz0123 of it',
  'sk-short, ghp_short, AKIA and eyJ.eyJ.x',
  'const id = "c_0123456789abcdefghijklmnopqrstuv"',
  '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  '',
])('what is none stays: %s', (text) => {
  expect(redactSecrets(text)).toBe(text);
});
