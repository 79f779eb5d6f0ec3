import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { tenantOf } from '../../src/proxy/tenant.js';

const sign = (text: string): string => createHmac('sha256', 'test').update(text).digest('base64url');
const settings = { single: false, userHeader: null, sign };

it.each([
  ['authorization', { authorization: 'Bearer a' }, '', { authorization: 'Bearer b' }, ''],
  ['x-api-key', { 'x-api-key': 'a' }, '', { 'x-api-key': 'b' }, ''],
  ['api-key', { 'api-key': 'a' }, '', { 'api-key': 'b' }, ''],
  ['x-goog-api-key', { 'x-goog-api-key': 'a' }, '', { 'x-goog-api-key': 'b' }, ''],
  ['the query', {}, '?key=a', {}, '?key=b'],
])(
  'two credentials in %s are two tenants, and one is always the same, SPEC 1.1',
  (_, headers, query, others, other) => {
    expect(tenantOf(headers, query, settings)).not.toBe(tenantOf(others, other, settings));
    expect(tenantOf(headers, query, settings)).toBe(tenantOf(headers, query, settings));
  },
);
