/**
 * Serves the documents: the API as a page, the pages of docs/ as they are or, to clients that prefer HTML, rendered, and their list for
 * models. Open to all, and the same for all.
 */
import { inPieces, loopTime, Pieces } from "../../core/loop/index.ts";
import { type DocsPage, docsSteps } from "../../domain/service/docs/page.tsx";
import { llmsText, PAGES } from "../../domain/service/docs/pages.ts";
import { textPage } from "../../domain/service/docs/text-page.tsx";
import { type HeaderFields, usualHeaders } from "./reply.ts";

const DOCS_PATH = "/docs";
const LLMS_PATH = "/llms.txt";
const PLAIN = "text/plain; charset=utf-8";
const HTML = "text/html; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";
/** Documents are text and run no scripts. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";

interface Document {
  type: string;
  policy: string;
  text: string;
}

type DocumentHandler = (requestId: string, accept: string | null) => Promise<Response>;

/** Browsers list HTML first; other programs do not list it, or accept anything. */
const prefersHtml = (accept: string | null): boolean => accept?.trimStart().startsWith("text/html") === true;

/** The handler for each path, called with a request ID; `host` is the name of this host, `url` the URL for clients. */
export function makeDocuments(host: string, url: string): Map<string, DocumentHandler> {
  const answer = (make: () => Document | Promise<Document>, more: HeaderFields = {}): DocumentHandler => {
    let made: Document | Promise<Document> | undefined;
    return async (requestId) => {
      made ??= make();
      const { type, policy, text } = await made;
      const headers: HeaderFields = {
        ...usualHeaders(requestId, host),
        "Content-Type": type,
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        ...more,
      };
      return new Response(text, { headers });
    };
  };
  const asHtml = ({ html, policy }: DocsPage) => ({ type: HTML, policy, text: html });
  const api = async () => asHtml(await inPieces(docsSteps(url), new Pieces(loopTime, "host", "docs")));
  const page = (name: string, text: string): DocumentHandler => {
    const varies = { Vary: "Accept" };
    const plain = answer(() => ({ type: MARKDOWN, policy: NOTHING, text }), varies);
    const rendered = answer(() => asHtml(textPage(name, text)), varies);
    return (requestId, accept) => (prefersHtml(accept) ? rendered : plain)(requestId, accept);
  };
  return new Map([
    [DOCS_PATH, answer(api)],
    [LLMS_PATH, answer(() => ({ type: PLAIN, policy: NOTHING, text: llmsText(url) }))],
    ...Object.entries(PAGES).map(([name, text]): [string, DocumentHandler] => [
      `${DOCS_PATH}/${name}`,
      page(name, text),
    ]),
  ]);
}
