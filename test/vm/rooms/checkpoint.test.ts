/**
 * A room with working agents is saved at one instant and forked into another: in each of the two all running work completes, each message
 * is processed once, the drive is as it was at the cut, and neither room sees the other.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json } from "../../harness/daemon.ts";
import { processesOf, until, withGuests } from "../../harness/guests.ts";
import { sampled } from "../../harness/sampled.ts";

const PROGRAM = readFileSync("test/fixtures/branching_agent.py", "utf8");
const AGENTS = ["one", "two", "three", "four"];
const ROUNDS = 10;
const LONG_MS = 300_000;

/** Each message that an agent is sent, once. */
const sentTo = (agent: string): string[] =>
  AGENTS.filter((other) => other !== agent)
    .flatMap((other) => Array.from({ length: ROUNDS }, (_, round) => `${other}.${round}.${agent}`))
    .sort();

withGuests("checkpoints", {}, (guests) => {
  beforeAll(async () => {
    await guests.daemon.room("first");
    await write("first", "/agent.py", PROGRAM);
    for (const agent of AGENTS) {
      await guests.daemon.sandbox("first", agent, guests.cid(), { memory_mib: 256 });
      await sh("first", agent, `ln -s agent.py /mnt/drive/link-${agent}; echo ${agent} >/root/own`);
    }
  }, LONG_MS);

  const sh = (room: string, name: string, line: string) => guests.daemon.sh(room, name, line);
  const read = async (room: string, path: string): Promise<string | null> => {
    const answer = await guests.daemon.api("GET", `/v1/rooms/${room}/drive/read?path=${path}`).catch(() => null);
    return answer?.status === 200 ? answer.body.content : null;
  };
  const write = (room: string, path: string, content: string) =>
    guests.daemon.ok("POST", `/v1/rooms/${room}/drive/write`, { path, content });
  const processedIn = async (room: string, agent: string): Promise<string[]> => {
    const text = await until(`${agent} of ${room} has finished`, () => read(room, `/${agent}.json`), LONG_MS);
    return JSON.parse(text);
  };
  const roomUid = async (room: string): Promise<string> =>
    (await guests.daemon.ok("GET", `/v1/rooms/${room}`)).room_uid;
  const namesIn = (...parts: string[]): string[] => {
    const directory = join(guests.daemon.dataDir, ...parts);
    return existsSync(directory) ? readdirSync(directory).sort() : [];
  };

  test(
    "four agents with messages and a barrier finish in both rooms, each message processed once in each",
    async () => {
      const { daemon } = guests;
      await write("first", "/mark", "before");
      for (const agent of AGENTS) {
        const argv = ["python3", "/mnt/drive/agent.py", String(ROUNDS), AGENTS.join()];
        const request = { exec_id: "agent", argv, timeout_ms: LONG_MS };
        await daemon.ok("POST", `/v1/rooms/first/sandboxes/${agent}/executions`, request);
      }
      await until("the agents are halfway", async () => (await read("first", "/one.log"))?.includes(".2."), LONG_MS);
      const taken: Json = await daemon.ok("POST", "/v1/rooms/first/checkpoints", { name: "the cut" });
      expect(taken).toMatchObject({ room_id: "first", name: "the cut" });
      expect(taken.snapshots.map(({ agent_id }: Json) => agent_id).sort()).toEqual([...AGENTS].sort());
      expect(taken.paused_ms).toBeGreaterThan(0);
      console.log(
        `checkpoint of four guests: paused ${taken.paused_ms} ms, ${taken.size_bytes} bytes, drive ${taken.drive_bytes}`,
      );
      await write("first", "/mark", "after");
      const startedAt = performance.now();
      const forked: Json = await daemon.ok("POST", "/v1/rooms/first/fork", {
        room_id: "second",
        checkpoint_id: taken.checkpoint_id,
      });
      console.log(`fork of four guests: ${Math.round(performance.now() - startedAt)} ms`);
      expect(forked.items.map(({ problem }: Json) => problem)).toEqual(AGENTS.map(() => null));
      expect(forked.room).toMatchObject({ room_id: "second", state: "active", sandbox_count: 4 });
      expect(await read("second", "/mark")).toBe("before");
      for (const agent of AGENTS) {
        expect((await processedIn("first", agent)).sort()).toEqual(sentTo(agent));
        expect((await processedIn("second", agent)).sort()).toEqual(sentTo(agent));
      }
      for (const room of ["first", "second"]) {
        for (const agent of AGENTS) {
          const log = await sh(
            room,
            agent,
            "sort /root/processed; hostname; cat /root/own; readlink /mnt/drive/link-one",
          );
          expect([room, ...log.split("\n")]).toEqual([room, ...sentTo(agent), agent, agent, "agent.py"]);
        }
        const { generation } = await daemon.ok("GET", `/v1/rooms/${room}/barriers/round`);
        expect([room, generation]).toEqual([room, ROUNDS]);
      }
      expect(await read("first", "/mark")).toBe("after");
      expect(await read("second", "/mark")).toBe("before");
      // New commands have the room's own name in their environment; with the former name they reach their own room and nothing else.
      const command =
        "curl -s $ROOMD_URL/v1/rooms/first/drive/read?path=/mark; echo; curl -s $ROOMD_URL/v1/rooms/second/drive/read?path=/mark";
      expect(await sh("second", "one", `echo $ROOMD_ROOM_ID; ${command}`)).toMatch(/^second\n.*"before".*\n.*"before"/);
      expect(await sh("first", "one", command)).toMatch(/"after".*\n.*room_not_found/);
    },
    3 * LONG_MS,
  );

  test("a snapshot of a checkpoint is deleted with it, and so are the checkpoint's files", async () => {
    const { daemon } = guests;
    const { items } = await daemon.ok("GET", "/v1/rooms/first/checkpoints");
    const [taken] = items;
    const [{ snapshot_id }] = taken.snapshots;
    const refused = await daemon.problem("DELETE", `/v1/rooms/first/snapshots/${snapshot_id}`);
    expect(refused).toMatchObject({ code: "snapshot_in_use", details: { used_by: [taken.checkpoint_id] } });
    const uid = await roomUid("first");
    await daemon.ok("DELETE", `/v1/rooms/first/checkpoints/${taken.checkpoint_id}`);
    expect([namesIn("rooms", uid, "checkpoints"), namesIn("rooms", uid, "snapshots")]).toEqual([[], []]);
    expect(await sh("second", "two", "cat /root/own")).toBe("two");
    await daemon.ok("DELETE", "/v1/rooms/second?drive=delete");
  });

  describe("a daemon that is killed", () => {
    const kill = async (point: string, verb: string, body: Json) => {
      const { daemon } = guests;
      await daemon.end("SIGTERM");
      daemon.env[FAULT_VARIABLE] = `${point}=kill`;
      await daemon.serve();
      await daemon.api("POST", `/v1/rooms/first/${verb}`, body).catch(() => null);
      await until("the daemon has exited", () => !daemon.runs, 60_000);
      delete daemon.env[FAULT_VARIABLE];
      await daemon.serve();
      await goOn("first");
    };
    const goOn = async (room: string) => {
      for (const agent of AGENTS) {
        await until(`${agent} runs in ${room}`, async () => {
          const { body } = await guests.daemon.api("GET", `/v1/rooms/${room}/sandboxes/${agent}`);
          return body.state === "running";
        });
        expect(await sh(room, agent, "cat /root/own")).toBe(agent);
      }
    };
    const taken = async (): Promise<Json[]> => (await guests.daemon.ok("GET", "/v1/rooms/first/checkpoints")).items;

    test.each(
      sampled("kills amid a checkpoint or fork", [
        ["checkpoints", "checkpoint.copied", 0],
        ["checkpoints", "checkpoint.cut", 0],
        ["checkpoints", "checkpoint.whole", 0],
        ["fork", "fork.drive", 1],
      ] as const),
    )(
      "during %s, at %s, leaves all of it or nothing",
      async (verb, point, extra) => {
        const { daemon } = guests;
        const before = await taken();
        await kill(point, verb, verb === "fork" ? { room_id: "third" } : {});
        const after = await taken();
        expect(after).toHaveLength(before.length + extra);
        const uid = await roomUid("first");
        const ids = after.map(({ checkpoint_id }) => checkpoint_id).sort();
        const snapshots = after.flatMap((item) => item.snapshots.map(({ snapshot_id }: Json) => snapshot_id)).sort();
        await until("the unfinished fork is removed", async () => {
          const { status } = await daemon.api("GET", "/v1/rooms/third");
          const left = [namesIn("rooms"), namesIn("rooms", uid, "checkpoints"), namesIn("rooms", uid, "snapshots")];
          return status === 404 && JSON.stringify(left) === JSON.stringify([[uid], ids, snapshots]);
        });
        const { items } = await daemon.ok("GET", "/v1/rooms/first/sandboxes");
        expect(items).toHaveLength(4);
      },
      LONG_MS,
    );

    test.each(sampled("kills while the room of a fork is made", ["fork.made", "start.begun"]))(
      "during the creation of a room, at %s, has it completed by the next one",
      async (point) => {
        const { daemon } = guests;
        const { checkpoint_id } = await daemon.ok("POST", "/v1/rooms/first/checkpoints", {});
        await kill(point, "fork", { room_id: "third", checkpoint_id });
        await goOn("third");
        // The checkpoint is deleted without affecting the fork.
        await until("the checkpoint is deleted", async () => {
          const { status } = await daemon.api("DELETE", `/v1/rooms/first/checkpoints/${checkpoint_id}`);
          return status === 200;
        });
        expect(await read("third", "/mark")).toBe("after");
        await daemon.ok("POST", "/v1/rooms/first/checkpoints", {});
        await daemon.ok("DELETE", "/v1/rooms/third?drive=delete");
      },
      LONG_MS,
    );
  });

  const change = async () => {
    const { daemon } = guests;
    await write("first", "/mark", "later");
    await daemon.api("DELETE", "/v1/rooms/first/sandboxes/two");
    await sh("first", "one", "echo later >/root/own; rm -f /mnt/drive/link-one");
    await daemon.ok("POST", "/v1/rooms/first/messages", { source: "one", destination: "three", message_id: "late" });
    await daemon.sandbox("first", "five", guests.cid(), { memory_mib: 256 });
  };
  const isAsThen = async () => {
    const { daemon } = guests;
    const { items } = await daemon.ok("GET", "/v1/rooms/first/sandboxes");
    const states = items.map(({ agent_id, state }: Json) => `${agent_id} ${state}`).sort();
    expect(states).toEqual(["four hibernated", "one running", "three paused", "two running"]);
    const command = "cat /root/own /mnt/drive/mark; echo; readlink /mnt/drive/link-one; touch /mnt/drive/new";
    for (const agent of ["one", "two"]) {
      expect(await sh("first", agent, command)).toBe(`${agent}\nthen\nagent.py`);
    }
    expect((await daemon.api("GET", "/v1/rooms/first/messages/late")).status).toBe(404);
    expect((await daemon.ok("GET", "/v1/rooms/first/messages/early")).state).toBe("queued");
  };

  describe("a room", () => {
    let checkpoint = "";

    test(
      "is restored: paused and hibernated sandboxes too, deleted ones are recreated, new ones destroyed",
      async () => {
        const { daemon } = guests;
        await write("first", "/mark", "then");
        await daemon.ok("POST", "/v1/rooms/first/messages", { source: "one", destination: "two", message_id: "early" });
        await daemon.ok("POST", "/v1/rooms/first/sandboxes/three/standby");
        await daemon.ok("POST", "/v1/rooms/first/sandboxes/four/hibernate");
        const before: Json = await daemon.ok("GET", "/v1/rooms/first/sandboxes/one");
        ({ checkpoint_id: checkpoint } = await daemon.ok("POST", "/v1/rooms/first/checkpoints", { name: "then" }));
        await change();
        const restored: Json = await daemon.ok("POST", `/v1/rooms/first/checkpoints/${checkpoint}/restore`, {});
        expect(restored.items.map(({ problem }: Json) => problem)).toEqual(AGENTS.map(() => null));
        await isAsThen();
        expect(await daemon.ok("GET", "/v1/rooms/first/sandboxes/one")).toMatchObject({
          sandbox_id: before.sandbox_id,
          guest_cid: before.guest_cid,
        });
      },
      LONG_MS,
    );

    test(
      "is restored even if one of its sandboxes has failed since: that one is recreated",
      async () => {
        const { daemon } = guests;
        const { sandbox_id } = await daemon.ok("GET", "/v1/rooms/first/sandboxes/one");
        for (const pid of processesOf(daemon, "qemu", sandbox_id)) process.kill(pid, "SIGKILL");
        await until("the sandbox is failed", async () => {
          const { state } = await daemon.ok("GET", "/v1/rooms/first/sandboxes/one");
          return state === "failed";
        });
        const restored: Json = await daemon.ok("POST", `/v1/rooms/first/checkpoints/${checkpoint}/restore`, {});
        expect(restored.items.map(({ problem }: Json) => problem)).toEqual(AGENTS.map(() => null));
        await isAsThen();
        const last = async (event: string): Promise<string[]> => {
          const { items } = await daemon.ok("GET", `/v1/rooms/first/audit?event=${event}&limit=2`);
          return items.map(({ agent_id }: Json) => agent_id);
        };
        // The second was re-created before, so it is no longer the checkpoint's.
        expect([await last("sandbox.destroyed"), await last("sandbox.created")].map((agents) => agents.sort())).toEqual(
          [
            ["one", "two"],
            ["one", "two"],
          ],
        );
        expect((await last("sandbox.rolled_back")).sort()).toEqual(["four", "three"]);
      },
      LONG_MS,
    );

    test.each(
      sampled(
        "kills amid a restore",
        ["restore.noted", "restore.ended", "restore.given", "restore.turned", "start.begun"],
        1,
      ),
    )(
      "whose restore is interrupted by a kill at %s is restored by the next daemon",
      async (point) => {
        const { daemon } = guests;
        await change();
        const turned = async () => {
          const { items } = await daemon.ok("GET", "/v1/rooms/first/audit?event=room.restored&limit=100");
          return items.filter(({ outcome }: Json) => outcome === "success").length;
        };
        const before = await turned();
        await daemon.end("SIGTERM");
        daemon.env[FAULT_VARIABLE] = `${point}=kill`;
        await daemon.serve();
        const call = () =>
          daemon.api("POST", `/v1/rooms/first/checkpoints/${checkpoint}/restore`, {}, { "idempotency-key": point });
        await call().catch(() => null);
        await until("the daemon has exited", () => !daemon.runs, 60_000);
        delete daemon.env[FAULT_VARIABLE];
        await daemon.serve();
        await until("the rollback is recorded", async () => (await turned()) > before, LONG_MS);
        await isAsThen();
        // The same call does not do it a second time.
        await sh("first", "one", "echo since >/root/since");
        expect(await call()).toMatchObject({ status: 200, body: { room: { room_id: "first" } } });
        expect(await sh("first", "one", "cat /root/since")).toBe("since");
      },
      LONG_MS,
    );
  });

  test(
    "a checkpoint that survived the kills can be forked, and the fork outlives the source",
    async () => {
      const { daemon } = guests;
      const forked: Json = await daemon.ok("POST", "/v1/rooms/first/fork", { room_id: "third" });
      expect(forked.items.map(({ problem }: Json) => problem)).toEqual(AGENTS.map(() => null));
      for (const agent of ["three", "four"]) await daemon.ok("POST", `/v1/rooms/third/sandboxes/${agent}/resume`);
      for (const agent of AGENTS) expect(await sh("third", agent, "cat /root/own")).toBe(agent);
      await daemon.ok("DELETE", "/v1/rooms/first?drive=delete");
      expect(await sh("third", "one", "cat /mnt/drive/mark")).toBe("then");
      await daemon.ok("DELETE", "/v1/rooms/third?drive=delete");
    },
    LONG_MS,
  );
});
