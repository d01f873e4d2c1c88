/** The inside of ssh2 that the door relies on: it is there, and a library without any part of it is found out. */
import type { Connection } from "ssh2";
import { expect, test } from "vitest";
import { newPrivateKey } from "../../../daemon/edge/ssh/host-key.ts";
import { probeInside } from "../../../daemon/edge/ssh/ssh2-internals.ts";

test("has the expected parts", async () => {
  expect(await probeInside(newPrivateKey())).toBeNull();
});

test.each<[string, (inside: Record<string, unknown>) => void]>([
  ["_sock", (inside) => Object.assign(inside, { _sock: {} })],
  [
    "_kexinit",
    (inside) => Object.defineProperty(inside._protocol, "_kexinit", { get: () => undefined, set: () => {} }),
  ],
  ["channelClose", (inside) => Object.defineProperty(inside._protocol, "channelClose", { value: undefined })],
])("without %s is detected", async (name, change) => {
  const tamper = (client: Connection) => change(client as unknown as Record<string, unknown>);
  expect(await probeInside(newPrivateKey(), tamper)).toContain(name);
});
