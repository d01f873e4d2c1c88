/** sandbox_file_watch: streams changes below a directory, from each position that the guest still retains. */
import { sandboxFileWatch } from "../../../../shared/api/sandbox-files.ts";
import { errorEvent } from "../../../core/call/error-event.ts";
import type { Bound, StreamEvent } from "../../../core/call/operation.ts";
import { type GuestWatch, watchInGuest } from "../../../host/guest-link/files.ts";
import { fileError } from "./errors.ts";
import { parsePath, pathRule } from "./path.ts";
import { bindFiles, type FileDeps } from "./verb.ts";

const CURSOR = /^([\w-]{1,64})\.(\d{1,15})$/;

export function makeWatch(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileWatch, {
    rules: ({ path }) => pathRule("path", path),
    paths: ({ path }) => [parsePath(path)],
    run: async (call, input, { link, until }, { last_event_id }) => {
      const path = parsePath(input.path);
      call.audit.details = { path };
      // A reconnecting client repeats its original URL; the header has the last cursor that it received.
      const [, watch_id = null, seq = "0"] = CURSOR.exec(last_event_id ?? "") ?? CURSOR.exec(input.after ?? "") ?? [];
      const request = { path, recursive: input.recursive ?? false, watch_id, after: Number(seq) };
      const watch = await watchInGuest(link, request);
      const over = Promise.withResolvers<void>();
      until(over.promise);
      const cancellation = new AbortController();
      const signal = AbortSignal.any([call.signal, cancellation.signal, deps.stopping]);
      const end = () => {
        watch.close();
        over.resolve();
      };
      if (signal.aborted) end();
      signal.addEventListener("abort", end, { once: true });
      const events = eventsOf(watch, { path, isNew: watch_id === null, signal }, over.resolve);
      return { outcome: "ok", events: { events, cancel: () => cancellation.abort() } };
    },
  });
}

/** Never throws: a failure is the last event. */
async function* eventsOf(
  { watch_id, changes, close }: GuestWatch,
  { path, isNew, signal }: { path: string; isNew: boolean; signal: AbortSignal },
  over: () => void,
): AsyncGenerator<readonly StreamEvent[]> {
  try {
    if (isNew) {
      const cursor = `${watch_id}.0`;
      yield [{ id: cursor, data: { cursor, type: "watching", path } }];
    }
    for await (const some of changes) {
      yield some.map(({ seq, ...change }) => {
        const cursor = `${watch_id}.${seq}`;
        return { id: cursor, data: { cursor, ...change } };
      });
    }
  } catch (error) {
    yield [errorEvent(signal.aborted ? signal.reason : fileError(error, "any"))];
  } finally {
    close();
    over();
  }
}
