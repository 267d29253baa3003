// Addresses are relative, so that the page works below any prefix. No validator: it would be asked over the Internet.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  validatorUrl: null,
});
