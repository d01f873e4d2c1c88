/** Where a server listens: at the port that is asked for or not at all, and at any that is free where none is. */
import { expect, test } from "vitest";
import { openListener, type ServeOptions } from "../../../daemon/edge/listener.ts";

/** A server whose first ports others have taken, so many of them. */
function startAfter(taken: number) {
  const tries: number[] = [];
  const start = ({ hostname, port }: ServeOptions) => {
    tries.push(port);
    if (tries.length <= taken) throw Object.assign(new Error("taken"), { code: "EADDRINUSE" });
    return Bun.serve({ hostname, port, fetch: () => new Response("here") });
  };
  return { tries, start };
}

test("another port is chosen where the first that was free is not any more", async () => {
  const { tries, start } = startAfter(2);
  const listener = openListener({ hostname: "127.0.0.1", port: 0 }, null, start);
  try {
    expect(await (await fetch(listener.url)).text()).toBe("here");
    expect(tries).toEqual([0, 0, 0]);
  } finally {
    await listener.stop(1000);
  }
});

test("a port that is asked for and taken is told, and so is it where none is free", () => {
  for (const [port, times] of [
    [4711, 1],
    [0, 8],
  ] as const) {
    const { tries, start } = startAfter(100);
    expect(() => openListener({ hostname: "127.0.0.1", port }, null, start)).toThrow("taken");
    expect(tries).toEqual(Array(times).fill(port));
  }
});
