/** What is cut when a key or session ends: all that is under way, but not the answer of what has ended the session itself. */
import { expect, test } from "vitest";
import type { HeldSession } from "../../../daemon/core/operation.ts";
import { Tenure } from "../../../daemon/edge/tenure.ts";
import type { KeyId } from "../../../shared/ids.ts";

const SESSION = { session_id: "ses_1", looks_at: "org_1", role: "owner" } as HeldSession;
const KEY = "kid_1" as KeyId;
const DONE = { outcome: "ok", body: {} };

/** What a call comes to that is cut while its work waits to be done. */
async function cutWhile(held: HeldSession | KeyId, isKept: boolean) {
  let cut = () => {};
  const work = Promise.withResolvers<typeof DONE>();
  const hold = (_: unknown, onEnd: () => void) => {
    cut = onEnd;
    return () => {};
  };
  const tenure = new Tenure(
    hold,
    held,
    () => new AbortController().signal,
    () => isKept,
  );
  const answered = tenure.until(work.promise).catch((error) => error.code);
  cut();
  work.resolve(DONE);
  return await answered;
}

test.each([
  ["by a session, before it is kept", SESSION, false, "session_ended"],
  ["by a session, once it is kept", SESSION, true, DONE],
  ["by a key, before it is kept", KEY, false, "invalid_api_key"],
  ["by a key, once it is kept", KEY, true, "invalid_api_key"],
] as const)("a call %s", async (_, held, isKept, expected) => {
  expect(await cutWhile(held, isKept)).toEqual(expected);
});
