import { describe, expect, it } from 'vitest';
import { redisAddress } from '../../src/ledger/redis-address.js';

describe('a Redis URL', () => {
  const plain = { tls: false, username: null, password: null };

  it.each([
    ['redis://host', { ...plain, hosts: [{ host: 'host', port: 6379 }], kind: { name: 'single', database: 0 } }],
    ['redis://[::1]:7000/3', { ...plain, hosts: [{ host: '::1', port: 7000 }], kind: { name: 'single', database: 3 } }],
    [
      'REDISS://user:p%40ss%2F%3A@10.0.0.1:1/',
      {
        tls: true,
        username: 'user',
        password: 'p@ss/:',
        hosts: [{ host: '10.0.0.1', port: 1 }],
        kind: { name: 'single', database: 0 },
      },
    ],
    [
      'redis://:only-a-password@host',
      {
        ...plain,
        password: 'only-a-password',
        hosts: [{ host: 'host', port: 6379 }],
        kind: { name: 'single', database: 0 },
      },
    ],
    [
      'redis-cluster://:secret@a:7000,b',
      {
        ...plain,
        password: 'secret',
        hosts: [
          { host: 'a', port: 7000 },
          { host: 'b', port: 6379 },
        ],
        kind: { name: 'cluster' },
      },
    ],
    [
      'rediss-sentinel://user:one@a,b:7000/main/2?sentinelPassword=two%26',
      {
        tls: true,
        username: 'user',
        password: 'one',
        hosts: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 7000 },
        ],
        kind: { name: 'sentinel', master: 'main', database: 2, sentinelPassword: 'two&' },
      },
    ],
    [
      'redis-sentinel://a/main',
      {
        ...plain,
        hosts: [{ host: 'a', port: 26_379 }],
        kind: { name: 'sentinel', master: 'main', database: 0, sentinelPassword: null },
      },
    ],
  ])('%s says where, how and as whom', (url, address) => {
    expect(redisAddress(url)).toEqual(address);
  });

  it.each([
    ['hunter2://host', /must be redis:\/\//],
    ['redis://', /host 1/],
    ['redis://:hunter2@host:0', /host 1/],
    ['redis://:hunter2@host:99999', /host 1/],
    ['redis://:hunter2@a,b', /several hosts/],
    ['redis-cluster://:hunter2@a,', /host 2/],
    ['redis://:hunter2%@host', /percent-encoded/],
    ['redis://:hunter2@host/name', /number of a database/],
    ['redis://:hunter2@host/1/2', /number of a database/],
    ['redis-cluster://:hunter2@host/1', /no.*database|database, which/],
    ['redis-sentinel://:hunter2@host', /name of the master/],
    ['redis://:hunter2@host?db=1', /has a query/],
    ['redis-sentinel://:hunter2@host/main?password=hunter2', /has a query/],
  ])('%s is refused with the reason, and nothing of it is repeated', (url, reason) => {
    const refused = () => redisAddress(url);
    expect(refused).toThrow(
      expect.objectContaining({ code: 'invalid_setting', message: expect.stringMatching(reason) }),
    );
    expect(refused).not.toThrow(/hunter/);
  });
});
