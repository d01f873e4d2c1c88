/** Destination of a user who has signed in first: places of ours, and nothing that a browser would interpret differently. */
import { expect, test } from "vitest";
import { comingBack, placeIn } from "../../../../daemon/edge/web/handlers/asked-place.ts";

/** The cookie that a browser stores for a place when it is redirected to sign in. */
const keptOf = (place: string) => comingBack({ to: "/signin" }, place).cookies?.asked ?? null;
/** Result of reading a cookie that another party has set in the browser. */
const readOf = (place: string) => placeIn(Buffer.from(place).toString("base64url"));

test.each([
  "/rooms",
  "/rooms?q=job-087&most=200",
  "/rooms/build-42",
  "/rooms/build-42/waits",
  "/rooms/build-42/timeline?span=1h&at=2026-11-24T10%3A00%3A00.000Z",
  "/rooms/build-42/agents/worker/commands?exec=exe_1",
  "/rooms/a%2Fb/agents/%C3%A4",
  "/audit?room=build-42&outcome=error",
  "/usage",
  "/webhooks",
  "/hosts",
  "/go/sbx_1",
  "/authorize?client_id=x",
  "/device?",
])("%s is a valid destination", (place) => {
  expect(placeIn(keptOf(place))).toBe(place);
});

test.each([
  "",
  "/",
  "//evil.example/rooms",
  "/\\evil.example/rooms",
  "https://evil.example/rooms",
  "javascript:alert(1)",
  "rooms",
  "/roomsx",
  "/rooms/",
  "/rooms//evil.example",
  "/rooms/..",
  "/rooms/../signout",
  "/rooms/%2e%2e/signout",
  "/rooms/.%2E/account",
  "/rooms/x\\..\\..\\signout",
  "/rooms/a/b/c",
  "/rooms/x#y",
  "/rooms?q=x#y",
  "/rooms?q=a b",
  "/rooms?q=\r\nSet-Cookie: roomd=x",
  "/rooms/\u0000",
  "/rooms/ä",
  "/signout",
  "/account/keys",
  "/go/..",
  `/rooms?q=${"x".repeat(3000)}`,
])("%j is neither stored nor followed", (place) => {
  expect([keptOf(place), readOf(place)]).toEqual([null, null]);
});

test("no destination is stored without a redirect to sign-in", () => {
  expect(comingBack({ to: "/rooms" }, "/rooms")).toEqual({ to: "/rooms" });
  const cookies = { session: "x" };
  expect(comingBack({ to: "/signin", cookies }, "/rooms").cookies).toEqual({ session: "x", asked: keptOf("/rooms") });
  expect(placeIn(null)).toBeNull();
});
