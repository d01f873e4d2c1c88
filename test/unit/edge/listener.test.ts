/** Ports of a server: exactly the configured one, or any free one if none is configured. */
import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { LocalhostTaken, openListener, type ServeOptions } from "../../../daemon/edge/listener.ts";

/** A server that finds its first `taken` ports in use by others. */
function startAfter(taken: number) {
  const tries: number[] = [];
  const start = ({ hostname, port }: ServeOptions) => {
    tries.push(port);
    if (tries.length <= taken) throw Object.assign(new Error("taken"), { code: "EADDRINUSE" });
    return Bun.serve({ hostname, port, fetch: () => new Response("here") });
  };
  return { tries, start };
}

test("another port is chosen if the first free one has been taken", async () => {
  const { tries, start } = startAfter(2);
  const listener = openListener({ hostname: "127.0.0.1", port: 0 }, null, start);
  try {
    expect(await (await fetch(listener.url)).text()).toBe("here");
    expect(tries).toEqual([0, 0, 0]);
  } finally {
    await listener.stop(1000);
  }
});

test("a configured port in use is an error, and so is a lack of free ports", () => {
  for (const [port, times] of [
    [4711, 1],
    [0, 8],
  ] as const) {
    const { tries, start } = startAfter(100);
    expect(() => openListener({ hostname: "127.0.0.1", port }, null, start)).toThrow("taken");
    expect(tries).toEqual(Array(times).fill(port));
  }
});

const hasLoopback6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
if (!hasLoopback6) console.warn("without localhost: this host has no loopback of IPv6");
const answer = ({ hostname, port }: ServeOptions) => Bun.serve({ hostname, port, fetch: () => new Response("here") });

test.runIf(hasLoopback6)(
  "reached as localhost, it holds both loopback addresses, so that no other user can listen on one",
  async () => {
    const listener = openListener({ hostname: "127.0.0.1", port: 0, byLocalhost: true }, null, answer);
    const { port } = listener.url;
    for (const host of ["127.0.0.1", "[::1]", "localhost"])
      expect(await (await fetch(`http://${host}:${port}`)).text()).toBe("here");
    await listener.stop(1000);
    await expect(fetch(`http://[::1]:${port}`)).rejects.toThrow();
  },
);

test.runIf(hasLoopback6)("if another program has one of them, it listens at none", async () => {
  // A port with a free IPv4 address: the listener itself searches a port for both addresses.
  const both = openListener({ hostname: "127.0.0.1", port: 0, byLocalhost: true }, null, answer);
  const port = Number(both.url.port);
  await both.stop(0);
  const foreign = Bun.serve({ hostname: "::1", port, fetch: () => new Response("foreign") });
  try {
    expect(() => openListener({ hostname: "127.0.0.1", port, byLocalhost: true }, null, answer)).toThrow(
      LocalhostTaken,
    );
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
  } finally {
    await foreign.stop(true);
  }
});
