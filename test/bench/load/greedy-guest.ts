/**
 * Attacks by guest root at the speed of this host: the guest's end of the link, seized from the agent with the guest's secret. Arguments:
 * the socket of the guest's vsock port, its CID, the nonce, the secret or `none`, `calls` or `names`, and the room.
 */

import { once } from "node:events";
import { writeSync } from "node:fs";
import { connect } from "node:net";
import { FrameType } from "../../../shared/agent-protocol/frame.ts";
import { guestProof } from "../../../shared/agent-protocol/host-proof.ts";
import { Link } from "../../../shared/agent-protocol/link.ts";
import {
  GENERATION,
  type GuestRequest,
  type Hello,
  HOST_PORT,
  PROOF_GENERATION,
  type Ready,
} from "../../../shared/agent-protocol/messages.ts";

const [, , path = "", guest_cid = "", nonce = "", secret = "", kind = "", room = ""] = process.argv;
/** As many as a guest may have under way. */
const AT_ONCE = { calls: 128, names: 512 };
let made = 0;

const socket = connect({ path });
await once(socket, "connect");
const link = new Link({
  side: "guest",
  transport: {
    write: (bytes) => (socket.write(Buffer.from(bytes)) ? undefined : once(socket, "drain").then(() => {})),
    close: () => socket.destroy(),
  },
  maxPeerStreams: 64,
  // The host's first request is for the time.
  onOpen: (stream) => stream.finish({ clock_ns: String(BigInt(Date.now()) * 1_000_000n) }),
  onHandshake: (type) => {
    if (type !== FrameType.welcome) return;
    link.sendJson(FrameType.ready, 0, { ok: true, nonce, stages_ms: {} } satisfies Ready);
    const lanes = AT_ONCE[kind as keyof typeof AT_ONCE];
    for (let lane = 0; lane < lanes; lane++) void ask();
    console.log("asking");
  },
  onClosed: (reason) => {
    console.error(`the daemon has ended the link: ${reason}`);
    process.exit(1);
  },
});
socket.on("data", (bytes: Buffer) => link.receive(bytes));
socket.on("close", () => link.close("the socket was closed"));
process.on("SIGTERM", () => {
  // Synchronous: the process would exit before an asynchronous write to the pipe.
  writeSync(1, `${made}\n`);
  process.exit(0);
});
const challenge = "0".repeat(64);
// The host's own proof is not checked. An agent without a secret sends its nonce immediately.
const shown =
  secret === "none"
    ? { generation: PROOF_GENERATION - 1, nonce }
    : {
        generation: GENERATION,
        nonce: "",
        challenge,
        proofs: [guestProof(secret, Number(guest_cid), HOST_PORT, challenge)],
      };
const hello: Hello = { ...shown, version: "0", guest_cid: Number(guest_cid), set_up: true };
link.sendJson(FrameType.hello, 0, hello);

async function ask(): Promise<never> {
  for (;;) {
    const stream = link.open(next());
    await stream.finished.catch(() => {});
    made++;
  }
}

function next(): GuestRequest {
  if (kind === "names") return { method: "egress_resolve", name: `n${made}-${Math.random()}.dead.example` };
  return { method: "room_call", http_method: "GET", path: `/v1/rooms/${room}/agents`, headers: {} };
}
