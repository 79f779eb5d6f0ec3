import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
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

describe('a request that does not say who sent it', () => {
  const userHeader = 'x-end-user';

  it.each([
    {},
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'bearer ' },
    { authorization: 'Basic' },
    { 'x-api-key': ' ' },
  ])('belongs to nobody: %j', (headers) => {
    expect(tenantOf(headers, '', settings)).toBeNull();
    expect(tenantOf(headers, '?key=', settings)).toBeNull();
    expect(tenantOf(headers, '?key=k', settings)).not.toBeNull();
    expect(tenantOf({ ...headers, [userHeader]: '' }, '', { ...settings, userHeader })).toBeNull();
  });

  it('belongs to the user whom the configured header names, and to everybody where all are one', () => {
    expect(tenantOf({ [userHeader]: 'ada' }, '', { ...settings, userHeader })).toMatch(/^t_/);
    expect(tenantOf({ [userHeader]: 'ada' }, '', settings)).toBeNull();
    expect(tenantOf({}, '', { ...settings, single: true })).toBe('local');
  });
});
