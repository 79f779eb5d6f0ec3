import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** How a provider hands out what only it may read: encrypted, authenticated, and the same for the same text. */
export interface Seal {
  /** `purpose`: what is sealed for one opens for no other. */
  seal(purpose: string, text: string): string;
  /** The text; null for what was not sealed with this secret for this purpose, or was changed since. */
  open(purpose: string, sealed: string): string | null;
}

export function createSeal(secret: string): Seal {
  const key = createHash('sha256').update(secret).digest();
  return {
    seal: (purpose, text) => {
      const nonce = createHmac('sha256', key).update(`${purpose}\n${text}`).digest().subarray(0, NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose));
      const bytes = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), bytes]).toString('base64');
    },
    open: (purpose, sealed) => {
      const bytes = Buffer.from(sealed, 'base64');
      if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== sealed) return null;
      const body = NONCE_BYTES + TAG_BYTES;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(purpose))
        .setAuthTag(bytes.subarray(NONCE_BYTES, body));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8');
      } catch {
        return null;
      }
    },
  };
}
