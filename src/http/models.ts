import { Hono } from 'hono';
import { z } from 'zod';
import { SpillwayError } from '../core/errors.js';
import type { ModelWindows } from '../proxy/model-windows.js';
import { modelJson } from './serialise.js';
import { validate } from './validate.js';

export interface ModelsDeps {
  readonly windows: Pick<ModelWindows, 'all' | 'forget'>;
}

const noQuery = z.strictObject({});

/** The resources under `/models`, for the operator: what is believed of each model's window, every tenant's (SPEC 6.5). */
export function models({ windows }: ModelsDeps): Hono {
  const app = new Hono();

  app.get('/', async (c) => {
    validate(noQuery, c.req.query());
    return c.json({ data: (await windows.all()).map(modelJson) });
  });

  /** Only what was learned can be forgotten. */
  app.delete('/:id', async (c) => {
    validate(noQuery, c.req.query());
    if (!(await windows.forget(c.req.param('id')))) {
      throw new SpillwayError('not_found', 'There is no model with this id of which a window was learned.', 'id');
    }
    return c.body(null, 204);
  });

  return app;
}
