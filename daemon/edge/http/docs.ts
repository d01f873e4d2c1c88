/** Serves the documents: the API as a page, the pages of docs/ as they are, and their list for models. Open to all, and the same for all. */
import { inPieces, loopTime, Pieces } from "../../core/loop/index.ts";
import { docsSteps } from "../../domain/service/docs/page.ts";
import { llmsText, PAGES } from "../../domain/service/docs/pages.ts";
import { type HeaderFields, usualHeaders } from "./reply.ts";

const DOCS_PATH = "/docs";
const LLMS_PATH = "/llms.txt";
const PLAIN = "text/plain; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";
/** They are text, and run nothing. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";

interface Document {
  type: string;
  policy: string;
  text: string;
}

/** By each path what answers a request of this id; `host` is the name of this one, `url` where clients find it. */
export function makeDocuments(host: string, url: string): Map<string, (requestId: string) => Promise<Response>> {
  const answer = (make: () => Document | Promise<Document>) => {
    let made: Document | Promise<Document> | undefined;
    return async (requestId: string) => {
      made ??= make();
      const { type, policy, text } = await made;
      const headers: HeaderFields = {
        ...usualHeaders(requestId, host),
        "Content-Type": type,
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
      };
      return new Response(text, { headers });
    };
  };
  const api = async () => {
    const { html, policy } = await inPieces(docsSteps(url), new Pieces(loopTime, "host", "docs"));
    return { type: "text/html; charset=utf-8", policy, text: html };
  };
  return new Map([
    [DOCS_PATH, answer(api)],
    [LLMS_PATH, answer(() => ({ type: PLAIN, policy: NOTHING, text: llmsText(url) }))],
    ...Object.entries(PAGES).map(([name, text]): [string, (requestId: string) => Promise<Response>] => [
      `${DOCS_PATH}/${name}`,
      answer(() => ({ type: MARKDOWN, policy: NOTHING, text })),
    ]),
  ]);
}
