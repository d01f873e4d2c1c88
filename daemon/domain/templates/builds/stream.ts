/** template_build_stream: the output of a build, from any position on, to any number of readers. */
import { type BuildRecord, templateBuildStream } from "../../../../shared/api/template-builds.ts";
import { errorEvent } from "../../../core/call/error-event.ts";
import { positionIn } from "../../../core/call/event-streams.ts";
import { type Bound, bind, type StreamEvent } from "../../../core/call/operation.ts";
import { ConcurrencyLimit } from "../../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { buildEventsAfter, getBuild } from "../store.ts";
import type { BuildEventRow, BuildRow } from "../table.ts";
import type { BuildsDeps } from "./deps.ts";
import type { Builds } from "./queue.ts";
import { findBuild } from "./record.ts";

const AT_ONCE = 200;
/** Maximum number of concurrent readers of an organization. */
const MAX_READERS = 64;

export function makeBuildStream({ database }: BuildsDeps, builds: Builds): Bound {
  const { queries } = database;
  const places = new ConcurrencyLimit(
    MAX_READERS,
    () =>
      new ServiceError("rate_limited", {
        detail: `At most ${MAX_READERS} streams of builds can be read concurrently.`,
      }),
  );

  async function* events(row: BuildRow, from: number, follow: boolean, signal: AbortSignal) {
    let after = from;
    if (after < 0) {
      const { build_id, created_at } = row;
      yield [{ id: 0, data: { seq: 0, type: "started", build_id, started_at: created_at } }];
      after = 0;
    }
    while (!signal.aborted) {
      const generation = builds.generation(row.build_id);
      const batch = buildEventsAfter(queries, row.build_id, after, AT_ONCE);
      if (batch.length > 0) {
        after = batch.at(-1)?.seq ?? after;
        yield batch.map(asEvent);
        continue;
      }
      const current = getBuild(queries, row.org_id, row.build_id);
      if (!current) throw new ServiceError("history_gone");
      if (current.finished_at !== null) {
        if (after < current.last_seq) yield [exitOf(current, current.finished_at)];
        return;
      }
      if (!follow) return;
      await builds.changed(row.build_id, generation, signal);
    }
    if (signal.reason instanceof ServiceError) throw signal.reason;
  }

  return bind(templateBuildStream, {
    find: (call, params) => findBuild(queries, call, params),
    run: (call, { after, follow = true }, row, { last_event_id }) => {
      const cancellation = new AbortController();
      const signal = AbortSignal.any([call.signal, cancellation.signal, builds.stopping]);
      const leave = places.take(call.caller.org_id);
      const unfollow = builds.follow(row.build_id);
      const over = () => {
        leave();
        unfollow();
      };
      // Ends the stream even if the client never reads its body.
      signal.addEventListener("abort", over, { once: true });
      const stream = untold(events(row, positionIn(last_event_id) ?? after ?? -1, follow, signal), () =>
        cancellation.abort(),
      );
      return { outcome: "ok", events: { events: stream, cancel: () => cancellation.abort() } };
    },
  });
}

/** Never throws: an error is the last event. */
async function* untold(
  events: AsyncGenerator<readonly StreamEvent[]>,
  over: () => void,
): AsyncGenerator<readonly StreamEvent[]> {
  try {
    yield* events;
  } catch (error) {
    yield [errorEvent(error)];
  } finally {
    over();
  }
}

function asEvent({ seq, at, state, line }: BuildEventRow): StreamEvent {
  if (state !== null) return { id: seq, data: { seq, type: "state", state, at } };
  return { id: seq, data: { seq, type: "stdout" }, data_b64: new TextEncoder().encode(`${line}\n`) };
}

function exitOf(row: BuildRow, finished_at: string): StreamEvent {
  const { last_seq: seq, digest, failure, created_at } = row;
  const state: BuildRecord["state"] = failure === null ? "ready" : "failed";
  const duration_ms = Math.max(0, Date.parse(finished_at) - Date.parse(created_at));
  const how = { exit_code: failure === null ? 0 : 1, state, digest, failure, finished_at, duration_ms };
  return { id: seq, data: { seq, type: "exit", ...how } };
}
