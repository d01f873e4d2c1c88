/** A viewer of a screen over WebSocket, with our own RFB client. */
import { RfbClient, type Wire } from "../../../daemon/domain/screen/rfb/client.ts";
import type { TestDaemon } from "../daemon.ts";

export interface ScreenViewer {
  client: RfbClient;
  /** Code and reason with which the service has closed it. */
  closed: Promise<[code: number, reason: string]>;
}

/** `path` as the API names it; without a ticket in it by the daemon's own key. Rejects when that is refused. */
export async function viewScreen(daemon: TestDaemon, path: string): Promise<ScreenViewer> {
  const url = new URL(path, daemon.url.replace(/^http/, "ws"));
  const headers = url.searchParams.has("ticket") ? {} : { authorization: `Bearer ${daemon.apiKey}` };
  const socket = new WebSocket(url, { headers });
  socket.binaryType = "arraybuffer";
  const came = new TransformStream<Uint8Array, Uint8Array>();
  const writer = came.writable.getWriter();
  writer.closed.catch(() => {});
  socket.onmessage = ({ data }) => void writer.write(new Uint8Array(data as ArrayBuffer)).catch(() => {});
  const closed = new Promise<[number, string]>((resolve) => {
    socket.onclose = ({ code, reason }) => {
      resolve([code, reason]);
      writer.close().catch(() => {});
    };
  });
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    void closed.then(([code, reason]) => reject(new Error(`not let in: ${code} ${reason}`)));
  });
  const wire: Wire = {
    output: came.readable,
    write: async (bytes) => void socket.send(bytes),
    close: () => socket.close(),
  };
  return { client: await RfbClient.open(wire, { answerMs: 120_000 }), closed };
}
