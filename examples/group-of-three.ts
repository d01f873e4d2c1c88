/** A group of three: a planner gives out a task, a worker does it on the shared drive, a reviewer checks it, and all meet at a barrier. */
import { Roomd } from "roomd-sdk";

await using room = await new Roomd().rooms.create();
const [planner, worker, reviewer] = await Promise.all(
  ["planner", "worker", "reviewer"].map((name) => room.createSandbox(name)),
);
if (!planner || !worker || !reviewer) throw new Error("expected three sandboxes");
const parties = { participants: ["planner", "worker", "reviewer"] };

async function plan() {
  await planner?.agent.send("worker", { task: "write sum.sh, which adds its arguments" });
  const verdict = await planner?.agent.wait<{ approved: boolean }>();
  console.log("planner: approved", verdict?.payload.approved);
  await planner?.agent.barrier("done", parties);
}

async function work() {
  const message = await worker?.agent.wait<{ task: string }>();
  console.log("worker:", message?.payload.task);
  await worker?.exec(`printf 'sum=0\\nfor each; do sum=$((sum + each)); done\\necho "$sum"\\n' >/mnt/drive/sum.sh`);
  await worker?.agent.request("reviewer", { file: "/mnt/drive/sum.sh" });
  await worker?.agent.barrier("done", parties);
}

async function review() {
  const request = await reviewer?.agent.wait<{ file: string }>({ kind: "request" });
  if (!reviewer || !request) throw new Error("no request arrived");
  const { stdout } = await reviewer.exec(["sh", request.payload.file, "1", "2", "3"]);
  const approved = stdout.trim() === "6";
  await reviewer.agent.reply(request, { approved });
  await reviewer.agent.send("planner", { approved });
  await reviewer.agent.barrier("done", parties);
}

await Promise.all([plan(), work(), review()]);
console.log("all three are done");
