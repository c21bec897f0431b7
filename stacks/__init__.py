"""The CDK stacks and their constructs, by concern. Importing this package chooses the CDK's Node.js."""

from stacks.nodejs import choose_node

choose_node()
