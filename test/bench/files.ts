/**
 * Benchmark of files in a sandbox: 20 MiB written and read over HTTP. Yardsticks: the same on the room's drive, which reaches no guest, and
 * the same bytes copied inside the guest and through a command's output, which bounds the possible gain on an emulated machine.
 */
import { randomBytes } from "node:crypto";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { takeTurns } from "./load/sampling.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 20;
const BYTES = 20 * 1024 ** 2;
const ROOM = "bench";
const AGENT = "a";

export async function benchFiles({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true, env: { ROOMD_POOL_SIZE: "0" } });
  await daemon.room(ROOM);
  await daemon.sandbox(ROOM, AGENT, GUEST_CID_MIN, { memory_mib: 512 });
  const bytes = randomBytes(BYTES);
  const headers = { authorization: `Bearer ${daemon.apiKey}` };
  const own = `${daemon.url}/v1/rooms/${ROOM}/sandboxes/${AGENT}/files/raw/root/large`;
  const drive = `${daemon.url}/v1/rooms/${ROOM}/drive/files/large`;
  const put = async (url: string) => {
    const response = await fetch(url, { method: "PUT", headers, body: bytes });
    if (!response.ok) throw new Error(`PUT: ${response.status} ${await response.text()}`);
  };
  const get = async (url: string) => {
    const response = await fetch(url, { headers });
    let received = 0;
    for await (const piece of response.body ?? []) received += piece.length;
    if (received !== BYTES) throw new Error(`GET: ${response.status} with ${received} bytes`);
  };
  const inGuest = async (command: string) => {
    const { exit_code } = await daemon.exec(ROOM, AGENT, { command, max_output_bytes: 1024 });
    if (exit_code !== 0) throw new Error(`${command}: ${exit_code}`);
  };
  await put(own);
  await put(drive);
  const samples = await takeTurns(count, {
    write: () => put(own),
    drive_write: () => put(drive),
    guest_copy: () => inGuest("cat /root/large >/root/copy && sync /root/copy"),
    read: () => get(own),
    drive_read: () => get(drive),
    guest_output: () => inGuest("cat /root/large"),
  });
  report.add("write_20m", "ms", samples.write, "drive_write_20m");
  report.add("drive_write_20m", "ms", samples.drive_write);
  report.add("guest_copy_20m", "ms", samples.guest_copy, "drive_write_20m");
  report.add("read_20m", "ms", samples.read, "drive_read_20m");
  report.add("drive_read_20m", "ms", samples.drive_read);
  report.add("guest_output_20m", "ms", samples.guest_output, "drive_read_20m");
}
