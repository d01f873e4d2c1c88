/**
 * Effects of the end of a key or session: all calls in progress are aborted, except the response of the call that ended the session itself.
 */
import { expect, test } from "vitest";
import type { HeldSession } from "../../../../daemon/core/call/operation.ts";
import { CallLifetime } from "../../../../daemon/edge/pipeline/call-lifetime.ts";
import type { KeyId } from "../../../../shared/ids.ts";

const SESSION = { session_id: "ses_1", looks_at: "org_1", role: "owner" } as HeldSession;
const KEY = "kid_1" as KeyId;
const DONE = { outcome: "ok", body: {} };

/** Result of a call that is aborted while its work is pending. */
async function cutWhile(held: HeldSession | KeyId, isKept: boolean) {
  let cut = () => {};
  const work = Promise.withResolvers<typeof DONE>();
  const hold = (_: unknown, onEnd: () => void) => {
    cut = onEnd;
    return () => {};
  };
  const tenure = new CallLifetime(
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
  ["by a session, before it is stored", SESSION, false, "session_ended"],
  ["by a session, once it is stored", SESSION, true, DONE],
  ["by a key, before it is stored", KEY, false, "invalid_api_key"],
  ["by a key, once it is stored", KEY, true, "invalid_api_key"],
] as const)("a call %s", async (_, held, isKept, expected) => {
  expect(await cutWhile(held, isKept)).toEqual(expected);
});

test("a streamed response holds its key until it is read or discarded", async () => {
  let held = 0;
  const cuts: (() => void)[] = [];
  const hold = (_: unknown, onEnd: () => void) => {
    held++;
    cuts.push(onEnd);
    return () => void held--;
  };
  const make = () =>
    new CallLifetime(
      hold,
      KEY,
      () => new AbortController().signal,
      () => false,
    );
  const stream = (bytes: ReadableStream<Uint8Array>) => ({ outcome: "ok", stream: { type: "video/mp4", bytes } });

  const read = make().end(stream(new Blob(["film"]).stream()))?.stream?.bytes;
  expect(held).toBe(1);
  expect(await new Response(read).text()).toBe("film");
  expect(held).toBe(0);

  let isThrownAway = false;
  const work = Promise.withResolvers<ReturnType<typeof stream>>();
  const answered = make().until(work.promise);
  cuts.at(-1)?.();
  await expect(answered).rejects.toMatchObject({ code: "invalid_api_key" });
  const cancel = () => {
    isThrownAway = true;
  };
  work.resolve(stream(new ReadableStream<Uint8Array>({ cancel })));
  await expect.poll(() => isThrownAway).toBe(true);
});
