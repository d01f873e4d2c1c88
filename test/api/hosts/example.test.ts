/**
 * A planner, a worker and a reviewer that connect to different hosts and do not know the location of their room, which is moved in the
 * meantime.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Room, Roomd } from "../../../sdk/typescript/src/index.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const ROUNDS = 4;

let service: TestHosts;
let clients: [Roomd, Roomd];

beforeAll(async () => {
  service = await TestHosts.start(2);
  await service.knowEachOther();
  clients = service.hosts.map(({ url, apiKey }) => new Roomd({ url, apiKey })) as [Roomd, Roomd];
}, 60_000);

afterAll(async () => {
  for (const client of clients ?? []) client.close();
  await service?.[Symbol.asyncDispose]();
});

test("work together while their room is moved there and back", { timeout: 120_000 }, async () => {
  const [first, second] = clients;
  const { id } = await first.rooms.create({ roomId: "team" });
  const [at, other] = [new Room(first.client, id), new Room(second.client, id)];
  const agents = { planner: at.agent("planner"), worker: other.agent("worker"), reviewer: at.agent("reviewer") };
  // The recipient of a message must be known.
  for (const agent of Object.values(agents)) await agent.subscribe(["team"]);
  const meets = { participants: ["planner", "worker", "reviewer"] };
  const merged: string[] = [];
  const moves: string[] = [];

  const plan = async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      // While the room is on its way again.
      await until("the room has moved", () => moves.length >= round - 1, 60_000);
      await at.drive.write(`/task-${round}.txt`, `sum ${round} ${round}`);
      await agents.planner.send("worker", { task: `/task-${round}.txt`, round });
      const verdict = await agents.planner.wait<string>({ source: "reviewer" });
      merged.push(`${verdict?.payload}: ${await at.drive.readText(`/result-${round}.txt`)}`);
      await agents.planner.barrier("merged", meets);
    }
  };
  const work = async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      const message = await agents.worker.wait<{ task: string; round: number }>({ source: "planner" });
      const [, ...numbers] = (await other.drive.readText(String(message?.payload.task))).split(" ");
      const sum = numbers.reduce((total, number) => total + Number(number), 0);
      await other.drive.write(`/result-${message?.payload.round}.txt`, String(sum));
      const reply = await agents.worker.request<string>("reviewer", { review: message?.payload.round });
      expect(reply.payload).toBe("approved");
      await agents.worker.barrier("merged", meets);
    }
  };
  const review = async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      const request = await agents.reviewer.wait<{ review: number }>({ source: "worker" });
      const result = await at.drive.readText(`/result-${request?.payload.review}.txt`);
      expect(result).toBe(String(2 * round));
      await agents.reviewer.reply(request ?? "", "approved");
      await agents.reviewer.send("planner", "approved");
      await agents.reviewer.barrier("merged", meets);
    }
  };

  const over = { is: false };
  const moving = (async () => {
    while (!over.is) {
      const to = (await at.get()).host === "host-1" ? "host-2" : "host-1";
      await moved(service.first, id, to);
      moves.push(to);
      // In a room that is always moving the agents make little progress.
      await until("the example has made progress", () => over.is || merged.length >= moves.length, 60_000);
    }
  })();
  await Promise.all([plan(), work(), review()]).finally(() => {
    over.is = true;
  });
  await moving;
  expect(merged).toEqual(["approved: 2", "approved: 4", "approved: 6", "approved: 8"]);
  expect(new Set(moves)).toEqual(new Set(["host-1", "host-2"]));
});

async function moved(host: TestDaemon, id: string, to: string): Promise<void> {
  await until("the room has moved", async () => {
    const { status, body } = await host.api("POST", `/v1/rooms/${id}/move`, { host: to });
    if (status >= 300 && body.code !== "room_moving") throw new Error(JSON.stringify(body));
    return status < 300;
  });
}
