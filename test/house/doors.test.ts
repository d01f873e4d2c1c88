/**
 * Doors of the event loop: each file with callbacks from outside (sockets, servers, threads) names the owner of their time, or is listed
 * here with the file that does. Listed files without one are not held to this yet: the list only shrinks. Timers are charged by
 * daemon/core/clock.ts.
 */
import { expect, test } from "vitest";
import { codeOfDaemon, linesThatMatch } from "./sources.ts";

const DOOR = /\bBun\.(listen|connect|serve)\b|\bnew (Worker|WebSocket)\(|\bcreate(Server|Connection)\(/;
const OWNER = /\bloopTime\b|\bnew Pieces\(|\bbegin\.(request|goesOn)\b/;

const CHARGED_BY: Record<string, string | null> = {
  "daemon/compose/aside.ts": "daemon/core/threads/thread.ts",
  "daemon/compose/readers.ts": "daemon/core/threads/thread.ts",
  "daemon/core/loop/watch.ts": null,
  "daemon/db/checkpoints.ts": null,
  "daemon/db/log-sync.ts": "daemon/db/transact.ts",
  "daemon/domain/egress/tunnels.ts": null,
  "daemon/edge/hosts/connection.ts": null,
  "daemon/edge/listener.ts": "daemon/edge/http/server.ts",
  "daemon/host/confine/bus.ts": null,
  "daemon/host/fetch-relay.ts": null,
  "daemon/host/files/drive-copier.ts": null,
  "daemon/host/files/holes.ts": null,
  "daemon/host/guest-link/transports/adopted.ts": "daemon/host/guest-link/link-socket.ts",
  "daemon/host/guest-link/transports/kernel.ts": "daemon/host/guest-link/link-socket.ts",
  "daemon/host/guest-link/transports/vhost-user.ts": "daemon/host/guest-link/link-socket.ts",
  "daemon/host/machine/memory-holes.ts": null,
  "daemon/host/process-end.ts": null,
  "daemon/host/unix-socket.ts": null,
};

const sources = codeOfDaemon();
const matching = (pattern: RegExp) =>
  sources.filter((source) => linesThatMatch(source, pattern).length > 0).map(({ path }) => path);
const named = matching(OWNER);
const doors = matching(DOOR);

test("each door of the event loop charges the time of its callbacks to an owner", () => {
  expect(doors.length).toBeGreaterThan(10);
  expect(doors.filter((path) => !named.includes(path)).toSorted()).toEqual(Object.keys(CHARGED_BY));
});

test("files that charge callbacks of others name an owner", () => {
  const charging = Object.values(CHARGED_BY).filter((path) => path !== null);
  expect(charging.filter((path) => !named.includes(path))).toEqual([]);
});
