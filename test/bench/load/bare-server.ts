/** A server that does nothing but answer: the yardstick of bench requests. Its one argument is the body; it prints its URL. */
const [, , body = ""] = process.argv;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response(body, { headers: { "Content-Type": "application/json" } }),
});
console.log(server.url.href);
