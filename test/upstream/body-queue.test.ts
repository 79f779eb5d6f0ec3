import { describe, expect, it } from 'vitest';
import { BodyQueue } from '../../src/upstream/body-queue.js';

function queue() {
  const calls: string[] = [];
  const body = new BodyQueue({
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    stop: () => calls.push('stop'),
  });
  return { body, calls };
}

const piece = Uint8Array.of(1);
const end = { done: true, value: undefined };

describe('BodyQueue', () => {
  it('pauses its source once 64 KiB wait, and resumes it when all of them are read', async () => {
    const { body, calls } = queue();
    body.push(new Uint8Array(64 * 1024 - 1));
    expect(calls).toEqual([]);
    body.push(piece);
    body.push(piece);
    expect(calls).toEqual(['pause']);
    await body.next();
    await body.next();
    expect(calls).toEqual(['pause']);
    await body.next();
    expect(calls).toEqual(['pause', 'resume']);
  });

  it('serves reads that were waiting in their order, the end after an error', async () => {
    const { body } = queue();
    const reads = [body.next(), body.next(), body.next()];
    body.push(piece);
    body.fail(new Error('broken'));
    const settled = await Promise.allSettled(reads);
    expect(settled).toMatchObject([{ value: { value: piece } }, { reason: { message: 'broken' } }, { value: end }]);
  });

  it('yields what was pushed before it ends or fails, and drops it when aborted', async () => {
    const { body: ended } = queue();
    ended.push(piece);
    ended.end();
    expect([await ended.next(), await ended.next()]).toEqual([{ done: false, value: piece }, end]);
    const { body: aborted } = queue();
    aborted.push(piece);
    aborted.abort(new Error('gone'));
    await expect(aborted.next()).rejects.toThrow('gone');
  });

  it('stops its source when the reader leaves early, once, and ends a read that is pending', async () => {
    const { body, calls } = queue();
    const pending = body.next();
    await body.return();
    await body.return();
    expect(await pending).toEqual(end);
    expect(await body.next()).toEqual(end);
    expect(calls).toEqual(['stop']);
  });

  it('does not stop a source that has ended', async () => {
    const { body, calls } = queue();
    body.end();
    await body.return();
    expect(calls).toEqual([]);
  });
});
