/** Input of a worker process from the daemon: one line of JSON; its end means that the daemon has ended. */

/** Resolves to the work in the first line; `over` is called at the end of the input. */
export function workOf<Work>(input: NodeJS.ReadStream, over: () => void): Promise<Work> {
  return new Promise((resolve) => {
    let text = "";
    input.setEncoding("utf8");
    input.on("data", (piece: string) => {
      text += piece;
      if (text.endsWith("\n")) resolve(JSON.parse(text) as Work);
    });
    input.on("end", over);
  });
}
