/** Limit of data that an SSH client has sent and its guest has not accepted. */
import { expect, test } from "vitest";
import { until } from "../../harness/guests.ts";
import { exec, holdInput, openDoor } from "./ssh-door.ts";

/** More in all than the door keeps and the system holds between it and its client. */
const CHANNELS = 32;
/** ssh2's window. */
const BYTES = 2 * 1024 * 1024;

test("all channels of a connection share a limit, above which the client waits, then continues", async () => {
  await using door = await openDoor();
  const guest = holdInput(door);
  const { client, socket } = await door.login();
  const channels = await Promise.all(Array.from({ length: CHANNELS }, () => exec(client, "cat")));
  for (const channel of channels) channel.write(Buffer.alloc(BYTES));
  let before = -1;
  await until("the write buffer is stalled", async () => {
    const left = socket.writableLength;
    const isSame = left === before;
    before = left;
    await Bun.sleep(200);
    return isSame;
  });
  expect(socket.writableLength).toBeGreaterThan(BYTES);
  guest.take();
  await until("all input is received", () => guest.taken === CHANNELS * BYTES);
});
