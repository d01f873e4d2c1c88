/** A long job: started by one process, found and followed to its end by another, whatever happens to the connection between them. */
import { Roomd } from "roomd-sdk";

async function begin(): Promise<{ room: string; job: string }> {
  const room = await new Roomd().rooms.create({ ttlSeconds: 3600 });
  const sandbox = await room.createSandbox("worker");
  const job = await sandbox.start("for step in 1 2 3 4 5; do echo step $step; sleep 1; done; echo finished");
  return { room: room.id, job: job.id };
}

async function follow({ room: name, job }: { room: string; job: string }): Promise<void> {
  const room = new Roomd().rooms.open(name);
  const execution = room.sandbox("worker").execution(job);
  const { exitCode, stdout } = await execution.wait();
  console.log(stdout.trim());
  console.log("exit", exitCode);
  await room.destroy({ drive: "delete" });
}

// In a real run these are two processes: the names are all that the second one needs.
await follow(await begin());
