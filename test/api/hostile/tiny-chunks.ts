/** Uploads to the drive in chunks of one byte. */
import { connect } from "node:net";
import type { Attack, Count, Target } from "../../harness/hostile/attack.ts";

const UPLOADS = 4;
const CHUNKS = 200_000;
const PART = "1\r\nx\r\n".repeat(10_000);

function upload(target: Target, lane: number, count: Count): void {
  const { hostname, port } = new URL(target.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(
    `PUT /v1/rooms/r/drive/files/f-${lane} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${target.key}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  let sent = 0;
  const send = () => {
    while (sent < CHUNKS) {
      sent += 10_000;
      if (!socket.write(PART)) return;
    }
    if (sent < Number.POSITIVE_INFINITY) socket.write("0\r\n\r\n");
    sent = Number.POSITIVE_INFINITY;
  };
  socket.on("connect", send).on("drain", send);
  socket.on("data", (chunk) => count(/HTTP\/1.1 (\d+)/.exec(chunk.toString("latin1"))?.[1] ?? "more"));
  socket.on("error", () => count("broken"));
  socket.on("close", () => upload(target, lane, count));
}

export default {
  title: "4 uploads in chunks of one byte",
  mostP99Ms: 30,
  prepare: async (daemon) => void (await daemon.room("r")),
  attack: async (target, count) => {
    for (let lane = 0; lane < UPLOADS; lane++) upload(target, lane, count);
    await new Promise(() => {});
  },
} satisfies Attack;
