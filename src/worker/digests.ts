import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Hash } from '../core/ports.js';
import type { Sign } from '../proxy/tenant.js';

const encoder = new TextEncoder();

/** SHA-256 of bytes, base64url: in plain code, because a Worker's own digests are asynchronous. */
export function digest(bytes: Uint8Array): string {
  return base64url(sha256(bytes));
}

/** The same ids as on every other platform. */
export const hash: Hash = (text) => digest(encoder.encode(text)).slice(0, 32);

export function signWith(secret: string): Sign {
  const key = encoder.encode(secret);
  return (text) => base64url(hmac(sha256, key, encoder.encode(text))).slice(0, 32);
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
