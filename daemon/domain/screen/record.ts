/** Audit records of screen activity that outlasts its call. */

import { actorOf, type KeyCall } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { appendAudit } from "../audit/index.ts";
import type { ScreenDeps } from "./deps.ts";

type ScreenEvent = "screen.drive_begun" | "screen.driven" | "screen.recording_ended";

/** With the actor of that call, and the current time. */
export async function recordOf(
  { database }: Pick<ScreenDeps, "database">,
  { caller, audit, source, request_id, ip }: KeyCall,
  event: ScreenEvent,
  details: object,
  durationMs: number,
): Promise<void> {
  await database.commit((queries) =>
    appendAudit(queries, {
      event,
      outcome: "success",
      at: now(),
      org_id: caller.org_id,
      actor: actorOf(caller),
      source,
      request_id,
      ip,
      duration_ms: Math.round(durationMs),
      ...audit,
      details: { ...details },
    }),
  );
}
