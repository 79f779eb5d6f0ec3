import { describe, expect, it } from 'vitest';
import { SpillwayError } from '../../src/core/errors.js';
import { defectOf, errorForm, errorResponse } from '../../src/http/errors.js';

describe('an error', () => {
  it.each([
    ['invalid_json', 400, 'invalid_request_error'],
    ['body_too_large', 413, 'invalid_request_error'],
    ['unsupported_encoding', 415, 'invalid_request_error'],
    ['unauthorized', 401, 'authentication_error'],
    ['forbidden_host', 403, 'invalid_request_error'],
    ['node_not_found', 404, 'invalid_request_error'],
    ['turn_in_progress', 409, 'invalid_request_error'],
    ['no_credential', 409, 'invalid_request_error'],
    ['upstream_unreachable', 502, 'server_error'],
    ['upstream_timeout', 504, 'server_error'],
    ['store_unavailable', 503, 'server_error'],
  ] as const)('%s has status %i in the form that OpenAI clients read', async (code, status, type) => {
    const response = errorResponse(errorForm(new SpillwayError(code, 'Why.', 'field')));
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual({ error: { message: 'Why.', type, param: 'field', code } });
  });

  it('that is a defect tells nothing of itself', () => {
    for (const defect of [new Error('secret'), 'secret', { code: 'not_found', message: 'secret' }, null, undefined]) {
      expect(errorForm(defect)).toMatchObject({
        status: 500,
        type: 'server_error',
        code: 'internal_error',
        field: null,
      });
      expect(JSON.stringify(errorForm(defect))).not.toContain('secret');
    }
  });
});

describe('what is told of a defect', () => {
  it('is its kind and place, whatever its message looks like', () => {
    const defect = defectOf(new SyntaxError('Unexpected "secret"\n    at secret (file.ts:1:1)'));
    expect(defect.kind).toBe('SyntaxError');
    expect(defect.frames[0]).toContain('errors.test.ts');
    expect(JSON.stringify(defect)).not.toContain('secret');
  });

  it('is a kind alone where there is no more', () => {
    expect(defectOf('secret')).toEqual({ kind: 'string', frames: [] });
    const bare = new Error('secret');
    delete bare.stack;
    expect(defectOf(bare)).toEqual({ kind: 'Error', frames: [] });
  });

  it('holds no message that was changed after the stack was made', () => {
    const error = new Error('secret\n    at secret');
    // The stack takes the message when it is first looked at.
    expect(error.stack).toContain('secret');
    error.message = 'not what it was';
    expect(JSON.stringify(defectOf(error))).not.toContain('secret');
  });
});
