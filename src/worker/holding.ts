import type { SendUpstream } from '../upstream/upstream.js';

/** Keeps the request during which it is called alive until the work is done. */
export type Hold = (work: Promise<unknown>) => void;

/**
 * The same port, each of whose answers is waited for by the request that asked: what is done beside a response, and a compaction that
 * outlives its client, ends only after its last question.
 */
export function holding<Port extends object>(port: Port, hold: Hold): Port {
  return new Proxy(port, {
    get(target, name, receiver): unknown {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function') return member;
      return (...args: readonly unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, args);
        if (result instanceof Promise) hold(result.catch(() => undefined));
        return result;
      };
    },
  });
}

/** The same way of sending: until the answer has been read to its end, or left. */
export function holdingSend(send: SendUpstream, hold: Hold): SendUpstream {
  return async (request) => {
    let done = (): void => undefined;
    hold(new Promise<void>((resolve) => (done = resolve)));
    try {
      const response = await send(request);
      return { ...response, body: untilRead(response.body, done) };
    } catch (error) {
      done();
      throw error;
    }
  };
}

function untilRead(body: AsyncIterable<Uint8Array>, done: () => void): AsyncIterable<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const heard: AsyncIterator<Uint8Array> = {
    async next() {
      try {
        const step = await iterator.next();
        if (step.done === true) done();
        return step;
      } catch (error) {
        done();
        throw error;
      }
    },
    async return() {
      done();
      return (await iterator.return?.()) ?? { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => heard };
}
