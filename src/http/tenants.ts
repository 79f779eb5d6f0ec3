import { Hono } from 'hono';
import { z } from 'zod';
import type { Directory } from '../core/ports.js';
import type { Deletion } from '../proxy/deletion.js';
import { tenantJson } from './serialise.js';
import { validate } from './validate.js';

export interface TenantsDeps {
  readonly directory: Pick<Directory, 'tenants'>;
  readonly deletion: Pick<Deletion, 'eraseTenant'>;
}

const noQuery = z.strictObject({});

/** The resources under `/tenants`, for the operator: what each keeps, and the end of one (SPEC 2.6). */
export function tenants({ directory, deletion }: TenantsDeps): Hono {
  const app = new Hono();

  app.get('/', async (c) => {
    validate(noQuery, c.req.query());
    const usage = await directory.tenants();
    const sorted = usage.toSorted((a, b) => b.bytes - a.bytes || (a.tenant < b.tenant ? -1 : 1));
    return c.json({ data: sorted.map(tenantJson) });
  });

  /** One that keeps nothing is erased already. */
  app.delete('/:tenant', async (c) => {
    validate(noQuery, c.req.query());
    return c.json(await deletion.eraseTenant(c.req.param('tenant')));
  });

  return app;
}
