import type { Bindings } from './worker/bindings.js';
import { createWorkerApp, type WorkerApp } from './worker/worker-app.js';

export { ConversationObject } from './worker/conversation-object.js';
export { DirectoryObject } from './worker/directory-object.js';

/** One for each isolate, like what it remembers; made with the first request, which brings the bindings. */
const apps = new WeakMap<Bindings, WorkerApp>();

/** The Worker: the whole proxy, its conversations in Durable Objects. Web-standard APIs only. */
export default {
  fetch(request: Request, bindings: Bindings): Promise<Response> {
    const app = apps.get(bindings) ?? createWorkerApp(bindings, (line) => console.log(line));
    apps.set(bindings, app);
    return app(request);
  },
};
