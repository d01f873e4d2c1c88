/** Guests among the agents of a room, in numbers: a history over kills of the daemon, and a barrier of eight. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { FabricHistory, readAll, sendMany } from "../../harness/fabric-checker.ts";
import { LONG, until, withGuests } from "../../harness/guests.ts";
import { Chance } from "../../harness/random.ts";

const PROGRAM = readFileSync("test/fixtures/fabric_agent.py", "utf8");
const GUESTS = 4;
const OTHERS = 46;
const MESSAGES = 200_000;
const OF_A_GUEST = 1000;
const KILLS = 10;
const HOUR_MS = 3_600_000;

const PARTIES = 8;
const ROUNDS = 5;

if (!LONG) console.log("fabric of guests: left out; ROOMD_TEST_LONG=1 runs it");
const chance = new Chance();
const named = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);

const long = test.skipIf(!LONG);

withGuests("guests and others in one room", { env: { ROOMD_AUDIT_READS: "false" } }, (guests) => {
  long(
    `${GUESTS} guests and ${OTHERS} others, ${MESSAGES} messages, ${KILLS} kills: no message is lost, duplicated or reordered (ROOMD_TEST_SEED=${chance.seed})`,
    async () => {
      const { daemon } = guests;
      const path = "/v1/rooms/history";
      await daemon.room("history");
      const [inside, outside] = [named("guest", GUESTS), named("agent", OTHERS)];
      const agents = [...inside, ...outside];
      for (const agent of inside) await daemon.sandbox("history", agent, guests.cid());
      for (const agent of outside) await daemon.ok("GET", `${path}/messages?agent_id=${agent}`);
      await daemon.ok("POST", `${path}/drive/write`, { path: "/agent.py", content: PROGRAM });
      for (const [index, agent] of inside.entries()) {
        const argv = ["python3", "/mnt/drive/agent.py", OF_A_GUEST, chance.seed + index, agents.join()].map(String);
        const body = { exec_id: "agent", argv, timeout_ms: HOUR_MS };
        await daemon.ok("POST", `${path}/sandboxes/${agent}/executions`, body);
      }
      const history = new FabricHistory();
      let over = false;
      const readers = outside.map((agent) => readAll(daemon, history, { path, agent, over: () => over }));
      const [rest, each] = [MESSAGES - GUESTS * OF_A_GUEST, Math.floor((MESSAGES - GUESTS * OF_A_GUEST) / OTHERS)];
      const senders = outside.map((source, index) => {
        const count = each + (index < rest - each * OTHERS ? 1 : 0);
        return sendMany(daemon, history, { path, source, agents, count, random: chance });
      });
      const isThere = async (file: string) =>
        (await daemon.api("GET", `${path}/drive/stat?path=${file}`).catch(() => null))?.status === 200;
      let killed = 0;
      const killing = (async () => {
        for (; killed < KILLS; killed++) {
          const target = ((killed + chance.next()) / KILLS) * rest * 0.95;
          while (history.acknowledged.length < target) await Bun.sleep(5);
          await daemon.restart("SIGKILL");
        }
      })();
      await Promise.all([...senders, killing]);
      for (const agent of inside)
        await until(`${agent} has sent its messages`, () => isThere(`/${agent}.sent`), HOUR_MS);
      await daemon.ok("POST", `${path}/drive/write`, { path: "/over", content: "" });
      over = true;
      await Promise.all(readers);
      for (const agent of inside) {
        const ended = await until(
          `${agent} has ended`,
          async () => {
            const execution = await daemon.ok("GET", `${path}/sandboxes/${agent}/executions/agent`);
            return execution.state === "running" ? null : execution;
          },
          HOUR_MS,
        );
        expect([agent, ended.exit_code]).toEqual([agent, 0]);
        const { content } = await daemon.ok("GET", `${path}/drive/read?path=/${agent}.json`);
        const { sent, seen } = JSON.parse(content);
        history.acknowledged.push(...sent);
        history.saw(agent, seen);
        console.log(`${agent}: sent ${sent.length}, saw ${seen.length}`);
      }
      expect(killed).toBe(KILLS);
      expect(history.acknowledged).toHaveLength(MESSAGES);
      expect(history.breaches().slice(0, 10)).toEqual([]);
      expect(history.missing).toBe(0);
    },
    HOUR_MS,
  );
});

withGuests("a barrier of eight guests", {}, (guests) => {
  const room = "eight";
  const path = `/v1/rooms/${room}`;
  const agents = named("guest", PARTIES);
  const call = (agent: string, place: string, body: object): Promise<Json> =>
    guests.daemon.exec(room, agent, {
      command: `curl -sS -w '\\n%{time_total}' -H 'content-type: application/json' -d '${JSON.stringify(body)}' $ROOMD_URL/v1/rooms/$ROOMD_ROOM_ID${place}`,
      timeout_ms: 100_000,
    });
  const arrive = async (agent: string, barrier_id: string, participants = agents): Promise<Json> => {
    const { stdout } = await call(agent, "/barriers", { barrier_id, participants, timeout_ms: 60_000 });
    const [text, seconds] = String(stdout).split("\n");
    return { ...JSON.parse(String(text)), took_ms: Number(seconds) * 1000 };
  };
  const waiting = (barrierId: string, count: number) =>
    until(`${count} agents wait at ${barrierId}`, async () => {
      const { items } = await guests.daemon.ok("GET", `${path}/agents`);
      return items.flatMap((item: Json) => item.waiting_on).length === count;
    });
  /** When each arrival came to the host, and when it was answered. */
  const arrivals = async (barrierId: string): Promise<{ agent: string; at: number; end: number; code: string }[]> => {
    const { items } = await guests.daemon.ok("GET", `${path}/audit?event=barrier.arrived&limit=1000`);
    return items
      .filter(({ details }: Json) => details.barrier_id === barrierId)
      .map(({ agent_id, at, duration_ms, error_code }: Json) => {
        const startedAt = Date.parse(at);
        return { agent: agent_id, at: startedAt, end: startedAt + duration_ms, code: error_code };
      });
  };

  long(
    "releases all waiters with the last arrival",
    async () => {
      await guests.daemon.room(room);
      for (const agent of agents) await guests.daemon.sandbox(room, agent, guests.cid());
      const [last = "", ...first] = agents;
      for (let round = 1; round <= ROUNDS; round++) {
        const barrierId = `round-${round}`;
        const waits = first.map((agent) => arrive(agent, barrierId));
        await waiting(barrierId, PARTIES - 1);
        const own = await arrive(last, barrierId);
        for (const answer of [own, ...(await Promise.all(waits))]) {
          expect(answer).toMatchObject({ state: "released", generation: 1, parties: PARTIES, missing: [] });
        }
        const all = await arrivals(barrierId);
        const came = Math.max(...all.map(({ at }) => at));
        const released = all.map(({ end }) => Math.round((end - came) * 10) / 10).toSorted((a, b) => a - b);
        console.log(
          `barrier of ${PARTIES}, round ${round}: ms from the last arrival to each answer ${released.join(" ")}; the last guest's own call ${own.took_ms.toFixed(1)}`,
        );
        expect(released).toHaveLength(PARTIES);
        // Relative to the time that the last guest's own call takes, by the same transport.
        expect(released.at(-1)).toBeLessThan(Math.max(60, own.took_ms));
      }
    },
    600_000,
  );

  long(
    "is broken by the end of one guest, which the others are informed of",
    async () => {
      const [removed = "", ...others] = agents;
      const waits = others.map((agent) => arrive(agent, "broken"));
      await waiting("broken", PARTIES - 1);
      await guests.daemon.ok("DELETE", `${path}/sandboxes/${removed}`);
      for (const answer of await Promise.all(waits)) {
        expect(answer).toMatchObject({
          status: 409,
          code: "barrier_broken",
          details: { dead: [removed], missing: [removed] },
        });
      }
    },
    120_000,
  );

  long(
    "answers all waiters when the room is destroyed",
    async () => {
      const others = agents.slice(1);
      const waits = others.map((agent) => arrive(agent, "deleted", [...others, "nobody"]).catch(() => null));
      await waiting("deleted", others.length);
      await guests.daemon.ok("DELETE", path);
      await Promise.all(waits);
      const { items } = await guests.daemon.ok("GET", "/v1/orgs/self/audit?limit=1000");
      const end = items.find(({ event, room_id }: Json) => event === "room.destroyed" && room_id === room);
      const startedAt = Date.parse(end.at);
      const answered = items
        .filter(({ details, error_code }: Json) => details.barrier_id === "deleted" && error_code === "room_destroying")
        .map(({ at, duration_ms }: Json) => Math.round(Date.parse(at) + duration_ms - startedAt));
      console.log(
        `room deleted: its ${answered.length} waiters answered after ${answered.join(" ")} ms of ${end.duration_ms}`,
      );
      expect(answered).toHaveLength(others.length);
      // Before the first guest has ended.
      for (const ms of answered) expect(ms).toBeLessThan(end.duration_ms);
    },
    120_000,
  );
});
