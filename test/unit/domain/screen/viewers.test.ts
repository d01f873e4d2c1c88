/** Live viewers of a screen: their number, the acceptance of their input, and disconnections. */
import { afterEach, expect, test } from "vitest";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { RfbClient } from "../../../../daemon/domain/screen/rfb/client.ts";
import { setEncodings } from "../../../../daemon/domain/screen/rfb/messages.ts";
import { MAX_VIEWERS, SCREEN_CLOSE } from "../../../../shared/api/screen.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { packed, RfbServer } from "../../../harness/browser/rfb-server.ts";
import { ScreenGuest, serve } from "../../../harness/browser/screen-guest.ts";
import { until } from "../../../harness/guests.ts";

const guests: ScreenGuest[] = [];
afterEach(() => {
  for (const guest of guests.splice(0)) guest.screens.stop();
});

/** Each connection has a separate server, which is how a shared one appears to its clients. */
function someGuest() {
  const servers: RfbServer[] = [];
  const guest = new ScreenGuest((stream) => {
    const server = new RfbServer();
    servers.push(server);
    return serve(server)(stream);
  });
  guests.push(guest);
  return { guest, servers };
}

test("a watcher sees the screen without input; a driving ticket allows input", async () => {
  const { guest, servers } = someGuest();
  const [watcher, guestWithTicket, driver] = await Promise.all(
    [await guest.view(), await guest.view(await guest.ticket(false)), await guest.view(await guest.ticket(true))].map(
      ({ wire }) => RfbClient.open(wire),
    ),
  );
  if (!watcher || !guestWithTicket || !driver) throw new Error("somebody is missing");
  for (const client of [watcher, guestWithTicket, driver]) {
    client.key(0x61, true);
    client.point(3, 4, 1);
    await client.current();
    expect([client.frame.width, client.frame.height, client.frame.pixels[0]]).toEqual([64, 40, 10]);
  }
  // Two more were connections of the tickets' own, to see whether there is a screen.
  const received = servers.filter(({ asked }) => asked > 0).map(({ keys, pointers }) => [keys.length, pointers.length]);
  expect(received).toEqual([
    [0, 0],
    [0, 0],
    [1, 1],
  ]);
  expect(guest.inUse).toBe(1);
});

test("driving is in the audit log once it has ended, and watching is not", async () => {
  const { guest } = someGuest();
  for (const drive of [false, true]) {
    const seat = await guest.view(await guest.ticket(drive));
    const client = await RfbClient.open(seat.wire);
    await client.current();
    seat.leave();
  }
  const recorded = () => listAudit(guest.database.queries, { org_id: "org_1" as OrgId, order: "asc", limit: 10 });
  await until("the view is recorded", async () => recorded().length > 1);
  expect(recorded()).toMatchObject([
    { event: "screen.drive_begun" },
    { event: "screen.driven", details: expect.stringContaining('"reason":"left"') },
  ]);
  expect(guest.inUse).toBe(0);
});

test.each<[keyof typeof SCREEN_CLOSE, (guest: ScreenGuest, servers: RfbServer[]) => void]>([
  ["unauthorized", (guest) => guest.revoke()],
  ["sandbox_stopped", (guest) => guest.become("paused")],
  ["going_away", (guest) => guest.screens.stop()],
  ["guest_unreachable", (_, servers) => servers.at(-1)?.wire.close()],
])("a viewer is disconnected with %s", async (why, end) => {
  const { guest, servers } = someGuest();
  const seat = await guest.view();
  const client = await RfbClient.open(seat.wire);
  await client.current();
  end(guest, servers);
  const [code, reason] = await seat.closed;
  expect([code, reason.split(":")[0]]).toEqual([SCREEN_CLOSE[why], why]);
});

test("a viewer that sends a forbidden message is disconnected", async () => {
  const { guest } = someGuest();
  const seat = await guest.view();
  seat.say("{}");
  expect(await seat.closed).toEqual([SCREEN_CLOSE.bad_message, expect.stringMatching(/^bad_message: /)]);
  const other = await guest.view();
  await other.wire.write(Buffer.from("GET / HTTP/1.1\r\n"));
  expect((await other.closed)[0]).toBe(SCREEN_CLOSE.bad_message);
});

test("a watcher is not sent the clipboard, and is disconnected if that is impossible", async () => {
  const { guest } = someGuest();
  const hello = (encodings: number[]) => packed("RFB 003.008\n", ["u8", 1], ["u8", 1], setEncodings(encodings));
  const seat = await guest.view(await guest.ticket(false));
  await seat.wire.write(hello([0]));
  const why = "bad_message: a view-only viewer must request encoding -1063131698";
  expect(await seat.closed).toEqual([SCREEN_CLOSE.bad_message, why]);
});

test("a viewer that sends more messages than allowed is disconnected", async () => {
  const { guest } = someGuest();
  const seat = await guest.view();
  const client = await RfbClient.open(seat.wire);
  await client.current();
  await seat.wire.write(new Uint8Array(64 * 1024).fill(250));
  expect((await seat.closed)[0]).toBe(SCREEN_CLOSE.input_overflow);
});

test("a viewer whose sandbox stops during the connect gets that reason", async () => {
  const { guest } = someGuest();
  guest.become("paused");
  const seat = await guest.view();
  expect((await seat.closed)[0]).toBe(SCREEN_CLOSE.sandbox_stopped);
});

test("a ticket is valid while its key is, and viewers of a screen are limited", async () => {
  const { guest } = someGuest();
  const ticket = await guest.ticket(true);
  await expect(guest.view("sdt_another")).rejects.toMatchObject({ code: "invalid_api_key" });
  const seats = [];
  for (let count = 0; count < MAX_VIEWERS; count++) seats.push(await guest.view());
  await expect(guest.view()).rejects.toMatchObject({ code: "insufficient_capacity" });
  seats[0]?.leave();
  await until("a slot is free", async () => (await guest.view().catch(() => null)) !== null);
  guest.revoke();
  await expect(guest.view(ticket)).rejects.toMatchObject({ code: "invalid_api_key" });
});
